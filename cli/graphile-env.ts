// Must be imported before Grafast, which prints a long warning if the variable is not set.
process.env.GRAPHILE_ENV ??= "production";
