-- Records changes in the transaction that makes them. It must neither fail nor wait: it takes no lock that another writer takes, checks no
-- foreign key, and a row that is too large is recorded without its content. Changes of one row are recorded in their order, because the row
-- is locked from its change to the end of the transaction. Rows are paired by their position: both transition tables have the order of
-- the updates.
-- Security definer, because writers may not insert deliveries; it reads nothing but the rows at hand.
create or replace function private.tg__webhook() returns trigger as $$
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
    insert into private.webhook_deliveries (webhook_id, type, keys, old, new) values (v_webhook, TG_OP, v_keys, v_old, v_new);
  elsif TG_OP = 'INSERT' then
    insert into private.webhook_deliveries (webhook_id, type, keys, new)
      select v_webhook, TG_OP, v_keys,
        case when pg_column_size(n) > 8000 then private.large_row(n, v_keys) else row_to_json(n) end
      from new_rows as n;
  elsif TG_OP = 'DELETE' then
    insert into private.webhook_deliveries (webhook_id, type, keys, old)
      select v_webhook, TG_OP, v_keys,
        case when pg_column_size(o) > 8000 then private.large_row(o, v_keys) else row_to_json(o) end
      from old_rows as o;
  else
    insert into private.webhook_deliveries (webhook_id, type, keys, old, new)
      select v_webhook, TG_OP, v_keys, before.row, after.row
      from (
        select row_number() over (),
          case when pg_column_size(o) > 8000 then private.large_row(o, v_keys) else row_to_json(o) end
        from old_rows as o
      ) as before (number, row)
      join (
        select row_number() over (),
          case when pg_column_size(n) > 8000 then private.large_row(n, v_keys) else row_to_json(n) end
        from new_rows as n
      ) as after (number, row) using (number)
      order by number;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__webhook is 'Records changes for the webhook whose id is the argument.';
