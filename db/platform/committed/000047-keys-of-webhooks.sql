--! Previous: sha1:c12df5d809afa0419f98cc6b92589ca3cae97354
--! Hash: sha1:fd29a173d9a5f99fda8d8c873d5d7d2e8235469b
--! Message: keys of webhooks

-- The key of a change is computed by the trigger that records it.
alter table private.webhook_deliveries alter key drop expression, alter moved_to drop expression;
alter table private.webhook_deliveries drop keys;

--! Included private/row_key.sql
-- Simple enough for Postgres to expand it where it is called.
create or replace function private.row_key("row" json, keys text[]) returns text
language sql stable
return case
  when keys is null then ''
  when keys[2] is null then coalesce("row" ->> keys[1], '')
  else private.composite_key("row", keys)
end;
comment on function private.row_key is 'The primary key of a row as text; empty if the table has none.';
--! EndIncluded private/row_key.sql
--! Included private/tg__webhook.sql
-- Records changes in the transaction that makes them. It must neither fail nor wait: it takes no lock that another writer takes, checks no
-- foreign key, and a row that is too large is recorded without its content. Changes of one row are recorded in their order, because the row
-- is locked from its change to the end of the transaction. Rows are paired by their position: both transition tables have the order of
-- the updates. The key is computed here, since a generated column makes every insert several times as slow.
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
    insert into private.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      values (
        v_webhook, TG_OP, private.row_key(coalesce(v_old, v_new), v_keys),
        case TG_OP when 'UPDATE' then nullif(private.row_key(v_new, v_keys), private.row_key(v_old, v_keys)) end, v_old, v_new
      );
  elsif TG_OP = 'INSERT' then
    insert into private.webhook_deliveries (webhook_id, type, key, new)
      select v_webhook, TG_OP, private.row_key(image, v_keys), image
      from (
        select case when pg_column_size(n) > 8000 then private.large_row(n, v_keys) else row_to_json(n) end
        from new_rows as n offset 0
      ) as images (image);
  elsif TG_OP = 'DELETE' then
    insert into private.webhook_deliveries (webhook_id, type, key, old)
      select v_webhook, TG_OP, private.row_key(image, v_keys), image
      from (
        select case when pg_column_size(o) > 8000 then private.large_row(o, v_keys) else row_to_json(o) end
        from old_rows as o offset 0
      ) as images (image);
  else
    insert into private.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      select v_webhook, TG_OP, private.row_key(before.image, v_keys),
        nullif(private.row_key(after.image, v_keys), private.row_key(before.image, v_keys)), before.image, after.image
      from (
        select row_number() over (),
          case when pg_column_size(o) > 8000 then private.large_row(o, v_keys) else row_to_json(o) end
        from old_rows as o
      ) as before (number, image)
      join (
        select row_number() over (),
          case when pg_column_size(n) > 8000 then private.large_row(n, v_keys) else row_to_json(n) end
        from new_rows as n
      ) as after (number, image) using (number)
      order by number;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__webhook is 'Records changes for the webhook whose id is the argument.';
--! EndIncluded private/tg__webhook.sql
--! Included private/webhook_table.sql
create or replace function private.webhook_table(webhook uuid) returns regclass
begin atomic
  select tgrelid::regclass from pg_trigger
  where tgfoid = 'private.tg__webhook()'::regprocedure and tgparentid = 0 and tgargs = convert_to(webhook::text, 'UTF8') || '\x00'::bytea
  limit 1;
end;
comment on function private.webhook_table is 'The table that has the triggers of a webhook, whatever it is called by now.';
--! EndIncluded private/webhook_table.sql
--! Included private/tg_webhooks__capture.sql
-- The triggers on the table exist as long as the webhook does: to turn it off locks nothing.
create or replace function private.tg_webhooks__capture() returns trigger as $$
begin
  if TG_OP = 'DELETE' then
    perform private.drop_webhook_triggers(OLD.id);
    delete from private.webhook_deliveries where webhook_id = OLD.id;
    delete from private.webhook_leases where webhook_id = OLD.id;
  elsif TG_OP = 'INSERT' then
    perform private.create_webhook_triggers(NEW);
  elsif NEW.id <> OLD.id or NEW.events <> OLD.events
    or private.webhook_table(NEW.id) is distinct from to_regclass(NEW.table_name)
  then
    perform private.drop_webhook_triggers(OLD.id);
    perform private.create_webhook_triggers(NEW);
  end if;
  notify webhooks;
  return null;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg_webhooks__capture is
  'Creates and drops the triggers that record the changes for a webhook, and notifies the service.';
--! EndIncluded private/tg_webhooks__capture.sql
--! Included private/maintain_webhooks.sql
-- A table that was renamed keeps its triggers; a database that was restored without triggers gets them again. Deliveries that a writer has
-- recorded while their webhook was deleted are deleted, too. Nothing waits long for a lock.
create or replace function private.maintain_webhooks() returns void as $$
declare
  v_webhook api.webhooks;
  v_name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('private.maintain_webhooks')) then
    return;
  end if;
  perform set_config('lock_timeout', '1s', true);
  for v_webhook in select * from api.webhooks loop
    begin
      select format('%I.%I', nspname, relname) into v_name
        from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = private.webhook_table(v_webhook.id);
      if v_name <> v_webhook.table_name then
        update api.webhooks set table_name = v_name where id = v_webhook.id;
      elsif v_name is null and to_regclass(v_webhook.table_name) is not null then
        perform private.create_webhook_triggers(v_webhook);
      end if;
    exception when others then
      raise warning 'Webhook % is not maintained: %', v_webhook.name, sqlerrm;
    end;
  end loop;
  with recursive recorded as (
    (select webhook_id from private.webhook_deliveries where state = 'pending' order by webhook_id limit 1)
    union all
    select (
      select webhook_id from private.webhook_deliveries
      where state = 'pending' and webhook_id > recorded.webhook_id order by webhook_id limit 1
    ) from recorded where webhook_id is not null
  )
  delete from private.webhook_deliveries where state = 'pending' and webhook_id in (
    select webhook_id from recorded where not exists (select from api.webhooks where id = webhook_id)
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_webhooks is
  'Follows renamed tables and creates missing triggers; called by the service as the owner.';
--! EndIncluded private/maintain_webhooks.sql
