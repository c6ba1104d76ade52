// Grafast reads this when it is loaded: unset, it says so at length on standard error. To be imported before it.
process.env.GRAPHILE_ENV ??= "production";
