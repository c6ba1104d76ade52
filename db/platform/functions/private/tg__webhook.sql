-- Records changes in the transaction that makes them. It must neither fail nor wait: it takes no lock that another writer takes, checks no
-- foreign key, and a row that is too large is recorded without its content. Changes of one row are recorded in their order, because the row
-- is locked from its change to the end of the transaction. Rows are paired by their position: both transition tables have the order of
-- the updates. The key is computed here, since a generated column makes every insert several times as slow.
-- Plans are made once for statements of any number of rows: a nested loop, which is right for one row, would take hours for a million, and
-- plans for each statement would take longer than the statement.
-- The settings of the writer do not change the text of a value, so a row has the same key whoever writes it.
-- Security definer, because writers may not insert deliveries; it reads nothing but the rows at hand.
create or replace function private.tg__webhook() returns trigger as $$
-- The columns of the table may have any name.
#variable_conflict use_variable
declare
  v_webhook uuid := TG_ARGV[0]::uuid;
  v_keys text[];
  v_old json;
  v_new json;
begin
  if not exists (select from api.webhooks where id = v_webhook and is_enabled) then
    return null;
  end if;
  select array_agg(attname order by position) into v_keys
    from pg_index, unnest(indkey::smallint[]) with ordinality as key (number, position), pg_attribute
    where indrelid = TG_RELID and indisprimary and attrelid = TG_RELID and attnum = number;
  if TG_LEVEL = 'ROW' then
    if TG_OP <> 'INSERT' then
      v_old := case when pg_column_size(OLD) > 8000 then private.large_row(OLD, v_keys) else row_to_json(OLD) end;
    end if;
    if TG_OP <> 'DELETE' then
      v_new := case when pg_column_size(NEW) > 8000 then private.large_row(NEW, v_keys) else row_to_json(NEW) end;
    end if;
    insert into private.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      values (
        v_webhook, TG_OP, private.row_key(coalesce(v_old, v_new), v_keys),
        case TG_OP when 'UPDATE' then nullif(private.row_key(v_new, v_keys), private.row_key(v_old, v_keys)) end, v_old, v_new
      );
  elsif TG_OP = 'INSERT' then
    insert into private.webhook_deliveries (webhook_id, type, key, new)
      select v_webhook, TG_OP, private.row_key(image, v_keys), image
      from (
        select case when pg_column_size(n.*) > 8000 then private.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n offset 0
      ) as images (image);
  elsif TG_OP = 'DELETE' then
    insert into private.webhook_deliveries (webhook_id, type, key, old)
      select v_webhook, TG_OP, private.row_key(image, v_keys), image
      from (
        select case when pg_column_size(o.*) > 8000 then private.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o offset 0
      ) as images (image);
  else
    insert into private.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      select v_webhook, TG_OP, private.row_key(before.image, v_keys),
        nullif(private.row_key(after.image, v_keys), private.row_key(before.image, v_keys)), before.image, after.image
      from (
        select row_number() over (),
          case when pg_column_size(o.*) > 8000 then private.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o
      ) as before (number, image)
      join (
        select row_number() over (),
          case when pg_column_size(n.*) > 8000 then private.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n
      ) as after (number, image) using (number)
      order by number;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '' set enable_nestloop = off set plan_cache_mode = force_generic_plan
  set timezone = 'UTC' set bytea_output = 'hex' set intervalstyle = 'postgres' set extra_float_digits = 1;
comment on function private.tg__webhook is 'Records changes for the webhook whose id is the argument.';
