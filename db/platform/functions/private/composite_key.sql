create or replace function private.composite_key("row" json, keys text[]) returns text
language sql immutable
return (select json_agg("row" -> name order by position)::text from unnest(keys) with ordinality as key (name, position));
comment on function private.composite_key is 'The values of a key of several columns.';
