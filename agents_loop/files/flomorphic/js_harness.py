"""What runs inside the engine around a node's script: it hands values in and out as JSON text, and nothing else.

The script gets `input`, `_get` and `_log`. The engine can't call out while it is timed, and need not: `_get` of a path
whose value was not given ends the script, and it is run again with that value. All that the harness uses of the
language was taken before the script began, so what the script does to prototypes is its own affair.
"""

from __future__ import annotations

from typing import Final

HARNESS: Final = r"""
(function (given) {
  'use strict';
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { keys } = Object;
  const isFinite = Number.isFinite;
  const call = Function.prototype.call;
  const tagOf = call.bind(Object.prototype.toString);
  const owns = call.bind(Object.prototype.hasOwnProperty);
  const isoOf = call.bind(Date.prototype.toISOString);
  const wellFormed = call.bind(String.prototype.toWellFormed);
  const slice = call.bind(String.prototype.slice);
  const text = String;
  const wrong = TypeError;
  const run = globalThis.eval;
  const known = parse(given.known);
  const mostChars = given.mostChars, mostDepth = given.mostDepth, mostWords = 500;
  const asked = { __proto__: null };
  let logs = '', wanted = '';

  function quoted(string) { return stringify(wellFormed(string)); }

  function fail(place, what) {
    const where = place.length > 60 ? slice(place, 0, 60) + '...' : place;
    throw new wrong('the output can\'t be kept: ' + where + ' is ' + what);
  }

  function tooLong() { return fail('it', 'longer than ' + mostChars + ' characters'); }

  function write(value, place, depth) {
    switch (typeof value) {
      case 'string': return value.length > mostChars ? tooLong() : quoted(value);
      case 'boolean': return value ? 'true' : 'false';
      case 'number': return isFinite(value) ? (value === 0 ? '0' : '' + value) : fail(place, '' + value);
      case 'object': break;
      case 'undefined': return fail(place, 'undefined');
      default: return fail(place, 'a ' + typeof value);
    }
    if (value === null) return 'null';
    if (depth > mostDepth) return fail(place, 'nested more than ' + mostDepth + ' deep, or holds itself');
    let out = '';
    if (isArray(value)) {
      const length = value.length;
      for (let i = 0; i < length; i++) {
        const item = value[i];
        out += (i ? ',' : '') + (item === undefined ? 'null' : write(item, place + '[' + i + ']', depth + 1));
        if (out.length > mostChars) tooLong();
      }
      return '[' + out + ']';
    }
    const tag = tagOf(value);
    if (tag === '[object Date]') return quoted(isoOf(value));
    if (tag !== '[object Object]') return fail(place, 'a thing of the kind ' + tag);
    const names = keys(value);
    const count = names.length;
    for (let i = 0; i < count; i++) {
      const name = names[i], item = value[name];
      if (item === undefined) continue;
      out += (out ? ',' : '') + quoted(name) + ':' + write(item, place + '.' + name, depth + 1);
      if (out.length > mostChars) tooLong();
    }
    return '{' + out + '}';
  }

  globalThis._get = function _get(path) {
    if (typeof path !== 'string') throw new wrong('_get takes a path such as "$.name", as a text');
    path = wellFormed(path);
    if (owns(known, path)) return known[path] === null ? undefined : parse(known[path]);
    if (!(path in asked)) {
      asked[path] = true;
      wanted += (wanted ? ',' : '') + quoted(path);
    }
    throw new wrong('_get: the value is fetched');
  };
  globalThis._log = function _log(message) {
    const line = quoted(text(message));
    if (logs.length + line.length < mostChars) logs += (logs ? ',' : '') + line;
  };
  globalThis.input = given.input === null ? undefined : parse(given.input);

  function words(error) { // any more of it helps nobody, and it may be millions
    const said = inFull(error);
    return said.length > mostWords ? slice(said, 0, mostWords) + '...' : said;
  }

  function inFull(error) {
    let name = '';
    try { name = text(error && error.name || '') } catch (_) { /* a getter of the script's */ }
    try {
      return (name && name + ': ') + text(error && error.message || error);
    } catch (_) { return name || 'the script threw something that can\'t be shown'; }
  }

  function outcome() {
    let value;
    try { value = run(given.code); } catch (error) { return '"error":' + quoted(words(error)); }
    if (value === undefined) return '"error":' + quoted('it has no value: end it with an expression');
    try { return '"output":' + write(value, 'it', 0); } catch (error) { return '"error":' + quoted(words(error)); }
  }

  const result = outcome();
  return wellFormed('{"wanted":[' + wanted + '],"logs":[' + logs + '],' + result + '}'); // in one piece
})
"""
