-- The member without a name, which no column can have, marks a row that was reduced to its key. A row of more than 16 MiB is not even
-- read for its key, and a value of JSON has at most a gigabyte.
create or replace function private.large_row("row" anyelement, keys text[]) returns json as $$
declare
  v_json json;
begin
  if pg_column_size("row") > 16777216 then
    return '{"": true}';
  end if;
  v_json := row_to_json("row");
  if octet_length(v_json::text) <= 1048576 then
    return v_json;
  end if;
  return (
    select coalesce(jsonb_object_agg(key, v_json -> key), '{}') || '{"": true}' from unnest(keys) as key
  );
exception when others then
  return '{"": true}';
end;
$$ language plpgsql stable set search_path = '';
comment on function private.large_row is 'A row as JSON, reduced to its key if it has more than 1 MiB.';
