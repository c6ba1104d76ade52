create or replace function auth.amr_entry(method text, at timestamptz) returns jsonb
language sql immutable
return jsonb_build_object('method', method, 'timestamp', floor(extract(epoch from at))::bigint);

comment on function auth.amr_entry is 'An entry of the claim amr: how the user signed in, and when.';
