-- Simple enough for Postgres to expand it where it is called.
create or replace function private.row_key("row" json, keys text[]) returns text
language sql stable
return case
  when keys is null then ''
  when keys[2] is null then coalesce("row" ->> keys[1], '')
  else private.composite_key("row", keys)
end;
comment on function private.row_key is 'The primary key of a row as text; empty if the table has none.';
