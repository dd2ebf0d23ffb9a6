"""What a request demands: listed once for a run, counted by code where it can, judged by a model where not."""
