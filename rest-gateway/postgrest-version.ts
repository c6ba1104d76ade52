/** The release of PostgREST whose answers ours are like. Tools read it, and supabase-js infers types by it. */
export const POSTGREST_VERSION = "14.0";
