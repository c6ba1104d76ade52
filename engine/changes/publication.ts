/** Whose tables are told of on channels; the name that Supabase gave it. */
export const PUBLICATION = "supabase_realtime";
