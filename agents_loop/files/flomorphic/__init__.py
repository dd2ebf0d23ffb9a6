"""FloMorphic exports: read, checked and run as they are. `docs/flomorphic.md` says what they mean here."""
