--! Previous: sha1:233129bb23cc9e6fbefcf1e64f957449ecd78e0e
--! Hash: sha1:16b6e3a19fccc8892f5735df746cc72e86a7f3b4
--! Message: webhooks of tables with any names of columns

-- An entry of an index has at most 2704 bytes, and a key may have more as text.
drop index if exists private.webhook_deliveries_moved;
create index if not exists webhook_deliveries_moved on private.webhook_deliveries (webhook_id) where moved_to is not null;
--! Included private/is_in_hierarchy.sql
create or replace function private.is_in_hierarchy("table" oid) returns boolean
begin atomic
  select relkind = 'p' or relispartition or relhassubclass or exists (select from pg_inherits where inhrelid = pg_class.oid)
  from pg_class where pg_class.oid = is_in_hierarchy."table";
end;
comment on function private.is_in_hierarchy is 'Whether a table is partitioned, or a partition, or inherits.';
--! EndIncluded private/is_in_hierarchy.sql
--! Included private/create_webhook_triggers.sql
-- Statement triggers, which make writes of many rows cheap, do not fire for a partition when its root is written, and the other way
-- round: partitions have row triggers.
create or replace function private.create_webhook_triggers(webhook api.webhooks) returns void as $$
declare
  v_table regclass := to_regclass(webhook.table_name);
  v_event text;
  v_level text := case when private.is_in_hierarchy(v_table) then 'for each row' else 'for each statement' end;
begin
  foreach v_event in array webhook.events loop
    execute format(
      'create trigger %I after %s on %s %s %s execute function private.tg__webhook(%L)',
      private.webhook_trigger_name(webhook.id, v_event), v_event, v_table,
      case when v_level = 'for each row' then ''
        else 'referencing' || case v_event when 'INSERT' then '' else ' old table as old_rows' end
          || case v_event when 'DELETE' then '' else ' new table as new_rows' end
      end,
      v_level, webhook.id
    );
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function private.create_webhook_triggers is 'Creates the triggers that record the changes of a table for a webhook.';
--! EndIncluded private/create_webhook_triggers.sql
--! Included private/tg__webhook.sql
-- Records changes in the transaction that makes them. It must neither fail nor wait: it takes no lock that another writer takes, checks no
-- foreign key, and a row that is too large is recorded without its content. Changes of one row are recorded in their order, because the row
-- is locked from its change to the end of the transaction. Rows are paired by their position: both transition tables have the order of
-- the updates. The key is computed here, since a generated column makes every insert several times as slow.
-- Plans are made once for statements of any number of rows: a nested loop, which is right for one row, would take hours for a million, and
-- plans for each statement would take longer than the statement.
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
$$ language plpgsql security definer set search_path = '' set enable_nestloop = off set plan_cache_mode = force_generic_plan;
comment on function private.tg__webhook is 'Records changes for the webhook whose id is the argument.';
--! EndIncluded private/tg__webhook.sql
--! Included private/maintain_webhooks.sql
-- A table that was renamed keeps its triggers; a database that was restored without triggers gets them again, and a table that has become a
-- partition gets row triggers. Deliveries that a writer has
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
      elsif private.is_in_hierarchy(to_regclass(v_name)) and exists (
        select from pg_trigger
        where tgrelid = to_regclass(v_name) and tgname = private.webhook_trigger_name(v_webhook.id, v_webhook.events[1]) and tgtype & 1 = 0
      ) then
        perform private.drop_webhook_triggers(v_webhook.id);
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
