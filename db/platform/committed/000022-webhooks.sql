--! Previous: sha1:1152ac528dac950aff99c80ddda4c3ac1f9a4263
--! Hash: sha1:a2939f516cbb9c686f9853aae0f9f712c2753b79

-- Changes of rows that are sent to other services. A trigger records them in the transaction that makes them; the service sends
-- what has been recorded. Only the owner may read and write what is here: a secret signs for the service.
create table api.webhooks (
  id               uuid primary key default gen_random_uuid(),
  name             text not null constraint webhooks_name_key unique constraint webhooks_name_length check (length(name) between 1 and 100),
  table_name       text not null,
  events           text[] not null default '{INSERT,UPDATE,DELETE}'
                   constraint webhooks_events_known check (events <@ '{INSERT,UPDATE,DELETE}' and events <> '{}'),
  "where"          text constraint webhooks_where_length check (length("where") between 1 and 5000),
  url              text not null constraint webhooks_url_form check (url ~ '^https?://[^\s/?#@]+([/?][^\s#]*)?$' and length(url) <= 2000),
  secret           text not null
                   default 'whsec_' || encode(decode(replace(gen_random_uuid() || '' || gen_random_uuid(), '-', ''), 'hex'), 'base64')
                   constraint webhooks_secret_form check (secret ~ '^whsec_[A-Za-z0-9+/]{32,128}={0,2}( whsec_[A-Za-z0-9+/]{32,128}={0,2})?$'),
  role             text not null default current_user,
  claims           jsonb not null default '{}' constraint webhooks_claims_object check (jsonb_typeof(claims) = 'object'),
  is_enabled       boolean not null default true,
  max_attempts     integer not null default 20 constraint webhooks_max_attempts_range check (max_attempts between 1 and 100),
  timeout          interval not null default '10 seconds' constraint webhooks_timeout_range check (timeout between '1 second' and '60 seconds'),
  disabled_because text
);
alter table api.webhooks enable row level security;
comment on table api.webhooks is 'Where changes of rows are sent to.';
comment on column api.webhooks.id is 'Names its triggers and its deliveries.';
comment on column api.webhooks.name is 'What operators call it.';
comment on column api.webhooks.table_name is 'The table whose changes are sent, with its schema.';
comment on column api.webhooks.events is 'INSERT, UPDATE and DELETE, or some of them.';
comment on column api.webhooks."where" is 'Which rows are sent, as in a query string: status=eq.paid&total=gt.100. The new row of an update decides; null for all rows.';
comment on column api.webhooks.url is 'Where requests are sent.';
comment on column api.webhooks.secret is 'Signs the requests; two, separated by a space, while it is rotated.';
comment on column api.webhooks.role is 'The role whose policies and privileges decide which rows and columns are sent.';
comment on column api.webhooks.claims is 'The claims that policies see, besides role.';
comment on column api.webhooks.is_enabled is 'Whether changes are recorded and sent.';
comment on column api.webhooks.max_attempts is 'After so many attempts a delivery is dead, until it is replayed.';
comment on column api.webhooks.timeout is 'How long the receiver may take.';
comment on column api.webhooks.disabled_because is 'Why the service has stopped sending. Changes are recorded as long as it is enabled. Any update of the row lets it go on.';

-- No foreign key: a writer would wait for whoever changes the webhook.
create table content_service.webhook_deliveries (
  id          bigint generated always as identity primary key,
  delivery_id uuid not null default gen_random_uuid(),
  webhook_id  uuid not null,
  type        text not null,
  old         json,
  new         json,
  key         text not null,
  moved_to    text,
  recorded_at timestamptz not null default clock_timestamp(),
  state       text not null default 'pending',
  attempts    integer not null default 0,
  due_at      timestamptz,
  last_error  text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 50000);
create index webhook_deliveries_pending on content_service.webhook_deliveries (webhook_id, id) where state = 'pending';
create index webhook_deliveries_dead on content_service.webhook_deliveries (webhook_id, recorded_at) where state = 'dead';
create index webhook_deliveries_delayed on content_service.webhook_deliveries (webhook_id) where due_at is not null;
-- Without the key: an entry of an index has at most 2704 bytes, and a key may have more as text.
create index webhook_deliveries_moved on content_service.webhook_deliveries (webhook_id) where moved_to is not null;
alter table content_service.webhook_deliveries enable row level security;
comment on table content_service.webhook_deliveries is 'Changes that have not been delivered yet, and those that could not be.';
comment on column content_service.webhook_deliveries.id is 'The order of the changes of one row.';
comment on column content_service.webhook_deliveries.delivery_id is 'The same in all attempts: webhook-id.';
comment on column content_service.webhook_deliveries.webhook_id is 'The webhook.';
comment on column content_service.webhook_deliveries.type is 'INSERT, UPDATE or DELETE.';
comment on column content_service.webhook_deliveries.old is 'The row before the change.';
comment on column content_service.webhook_deliveries.new is 'The row after the change.';
comment on column content_service.webhook_deliveries.key is 'The primary key before the change. Changes with the same key are sent in their order.';
comment on column content_service.webhook_deliveries.moved_to is 'The primary key after the change, if it has changed.';
comment on column content_service.webhook_deliveries.recorded_at is 'When the change was made.';
comment on column content_service.webhook_deliveries.state is 'pending or dead.';
comment on column content_service.webhook_deliveries.attempts is 'How often it was sent.';
comment on column content_service.webhook_deliveries.due_at is 'When it is sent again after a failure.';
comment on column content_service.webhook_deliveries.last_error is 'Why the last attempt failed.';

create table content_service.webhook_leases (
  webhook_id   uuid primary key,
  holder       uuid,
  expires_at   timestamptz not null,
  delivered_at timestamptz
);
alter table content_service.webhook_leases enable row level security;
comment on table content_service.webhook_leases is 'Which process sends for a webhook, and when it last delivered.';
comment on column content_service.webhook_leases.webhook_id is 'The webhook.';
comment on column content_service.webhook_leases.holder is 'The process; null if it has released the webhook.';
comment on column content_service.webhook_leases.expires_at is 'When another process may take over.';
comment on column content_service.webhook_leases.delivered_at is 'When a change was last delivered, to within five seconds.';

-- The trigger on a table records its changes, with the key of the row at the time.
create function content_service.composite_key("row" json, keys text[]) returns text
language sql immutable
return (select json_agg("row" -> name order by position)::text from unnest(keys) with ordinality as key (name, position));
comment on function content_service.composite_key is 'The values of a key of several columns.';

-- Simple enough for Postgres to expand it where it is called.
create function content_service.row_key("row" json, keys text[]) returns text
language sql stable
return case
  when keys is null then ''
  when keys[2] is null then coalesce("row" ->> keys[1], '')
  else content_service.composite_key("row", keys)
end;
comment on function content_service.row_key is 'The primary key of a row as text; empty if the table has none.';

-- The member without a name, which no column can have, marks a row that was reduced to its key. A row of more than 16 MiB is not even
-- read for its key, and a value of JSON has at most a gigabyte.
create function content_service.large_row("row" anyelement, keys text[]) returns json as $$
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
comment on function content_service.large_row is 'A row as JSON, reduced to its key if it has more than 1 MiB.';

-- Records changes in the transaction that makes them. It must neither fail nor wait: it takes no lock that another writer takes, checks no foreign key, and a row
-- that is too large is recorded without its content. Changes of one row are recorded in their order, because the row is locked from its change to the end of the
-- transaction. Rows are paired by their position: both transition tables have the order of the updates. The key is computed here, since a generated column makes
-- every insert several times as slow. Plans are made once for statements of any number of rows: a nested loop, which is right for one row, would take hours for a
-- million, and plans for each statement would take longer than the statement. The settings of the writer do not change the text of a value, so a row has the same
-- key whoever writes it. Security definer, because writers may not insert deliveries; it reads nothing but the rows at hand.
create function content_service.tg__webhook() returns trigger as $$
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
      v_old := case when pg_column_size(OLD) > 8000 then content_service.large_row(OLD, v_keys) else row_to_json(OLD) end;
    end if;
    if TG_OP <> 'DELETE' then
      v_new := case when pg_column_size(NEW) > 8000 then content_service.large_row(NEW, v_keys) else row_to_json(NEW) end;
    end if;
    insert into content_service.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      values (
        v_webhook, TG_OP, content_service.row_key(coalesce(v_old, v_new), v_keys),
        case TG_OP when 'UPDATE' then nullif(content_service.row_key(v_new, v_keys), content_service.row_key(v_old, v_keys)) end, v_old, v_new
      );
  elsif TG_OP = 'INSERT' then
    insert into content_service.webhook_deliveries (webhook_id, type, key, new)
      select v_webhook, TG_OP, content_service.row_key(image, v_keys), image
      from (
        select case when pg_column_size(n.*) > 8000 then content_service.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n offset 0
      ) as images (image);
  elsif TG_OP = 'DELETE' then
    insert into content_service.webhook_deliveries (webhook_id, type, key, old)
      select v_webhook, TG_OP, content_service.row_key(image, v_keys), image
      from (
        select case when pg_column_size(o.*) > 8000 then content_service.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o offset 0
      ) as images (image);
  else
    insert into content_service.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      select v_webhook, TG_OP, content_service.row_key(before.image, v_keys),
        nullif(content_service.row_key(after.image, v_keys), content_service.row_key(before.image, v_keys)), before.image, after.image
      from (
        select row_number() over (),
          case when pg_column_size(o.*) > 8000 then content_service.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o
      ) as before (number, image)
      join (
        select row_number() over (),
          case when pg_column_size(n.*) > 8000 then content_service.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n
      ) as after (number, image) using (number)
      order by number;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '' set enable_nestloop = off set plan_cache_mode = force_generic_plan
  set timezone = 'UTC' set bytea_output = 'hex' set intervalstyle = 'postgres' set extra_float_digits = 1;
comment on function content_service.tg__webhook is 'Records changes for the webhook whose id is the argument.';

create function content_service.webhook_trigger_name(webhook uuid, event text) returns text
language sql immutable
return '_950_webhook_' || lower(event) || '_' || replace(webhook::text, '-', '');
comment on function content_service.webhook_trigger_name is 'The name of the trigger that records one kind of change for a webhook.';

create function content_service.webhook_table(webhook uuid) returns regclass
begin atomic
  select tgrelid::regclass from pg_trigger
  where tgfoid = 'content_service.tg__webhook()'::regprocedure and tgparentid = 0 and tgargs = convert_to(webhook::text, 'UTF8') || '\x00'::bytea
  limit 1;
end;
comment on function content_service.webhook_table is 'The table that has the triggers of a webhook, whatever it is called by now.';

create function content_service.is_in_hierarchy("table" oid) returns boolean
begin atomic
  select relkind = 'p' or relispartition or relhassubclass or exists (select from pg_inherits where inhrelid = pg_class.oid)
  from pg_class where pg_class.oid = is_in_hierarchy."table";
end;
comment on function content_service.is_in_hierarchy is 'Whether a table is partitioned, or a partition, or inherits.';

-- Statement triggers, which make writes of many rows cheap, do not fire for a partition when its root is written, and the other way
-- round: partitions have row triggers.
create function content_service.create_webhook_triggers(webhook api.webhooks) returns void as $$
declare
  v_table regclass := to_regclass(webhook.table_name);
  v_event text;
  v_level text := case when content_service.is_in_hierarchy(v_table) then 'for each row' else 'for each statement' end;
begin
  foreach v_event in array webhook.events loop
    execute format(
      'create trigger %I after %s on %s %s %s execute function content_service.tg__webhook(%L)',
      content_service.webhook_trigger_name(webhook.id, v_event), v_event, v_table,
      case when v_level = 'for each row' then ''
        else 'referencing' || case v_event when 'INSERT' then '' else ' old table as old_rows' end
          || case v_event when 'DELETE' then '' else ' new table as new_rows' end
      end,
      v_level, webhook.id
    );
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.create_webhook_triggers is 'Creates the triggers that record the changes of a table for a webhook.';

create function content_service.drop_webhook_triggers(webhook uuid) returns void as $$
declare
  v_trigger record;
begin
  for v_trigger in
    select tgname, tgrelid::regclass as "table" from pg_trigger
    where tgfoid = 'content_service.tg__webhook()'::regprocedure and tgparentid = 0
      and tgname in (
        content_service.webhook_trigger_name(webhook, 'INSERT'), content_service.webhook_trigger_name(webhook, 'UPDATE'),
        content_service.webhook_trigger_name(webhook, 'DELETE')
      )
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger."table");
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.drop_webhook_triggers is 'Drops the triggers that record changes for a webhook, wherever its table is.';

-- The name of the table is kept with its schema. A change of a webhook that the service has paused lets it go on.
create function content_service.tg_webhooks__check() returns trigger as $$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
  v_name text[];
  v_given text := NEW.table_name;
begin
  if TG_OP = 'UPDATE' and NEW.disabled_because is not distinct from OLD.disabled_because then
    NEW.disabled_because := null;
  end if;
  if TG_OP = 'INSERT' or NEW.table_name <> OLD.table_name then
    begin
      v_name := parse_ident(NEW.table_name);
    exception when others then
      v_name := '{}';
    end;
    if cardinality(v_name) = 1 then
      v_name := array['public', v_name[1]];
    end if;
    select format('%I.%I', nspname, relname) into NEW.table_name
      from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where array[nspname, relname]::text[] = v_name and relkind in ('r', 'p') and relpersistence <> 't'
        and nspname not in ('api', 'content_service', 'pg_catalog', 'information_schema');
    if not found then
      raise exception 'There is no table % whose changes can be sent', v_given
        using errcode = 'WRONG', detail = 'table_name', hint = 'Write the name with its schema: public.orders.';
    end if;
  end if;
  if TG_OP = 'INSERT' or NEW.role <> OLD.role then
    -- The service sends what this role may read. The owner of the tables, and a superuser, are bound by no policy.
    if not exists (
      select from pg_roles as login
      where not login.rolsuper and has_function_privilege(login.oid, 'content_service.lock_task(text)', 'execute')
        and login.oid <> (select relowner from pg_class where oid = TG_RELID)
        and pg_has_role(login.oid, to_regrole(quote_ident(NEW.role)), v_become)
    ) then
      raise exception 'The login of the service cannot read as role %', NEW.role
        using errcode = 'WRONG', detail = 'role',
          hint = 'Choose a role of requests, such as service_role, whose rights decide which rows and columns are sent.';
    end if;
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg_webhooks__check is 'Checks the table and the role of a webhook.';

-- The triggers on the table exist as long as the webhook does: to turn it off locks nothing.
create function content_service.tg_webhooks__capture() returns trigger as $$
begin
  if TG_OP = 'DELETE' then
    perform content_service.drop_webhook_triggers(OLD.id);
    delete from content_service.webhook_deliveries where webhook_id = OLD.id;
    delete from content_service.webhook_leases where webhook_id = OLD.id;
  elsif TG_OP = 'INSERT' then
    perform content_service.create_webhook_triggers(NEW);
  elsif NEW.id <> OLD.id or NEW.events <> OLD.events
    or content_service.webhook_table(NEW.id) is distinct from to_regclass(NEW.table_name)
  then
    perform content_service.drop_webhook_triggers(OLD.id);
    perform content_service.create_webhook_triggers(NEW);
  end if;
  notify webhooks;
  return null;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg_webhooks__capture is 'Creates and drops the triggers that record the changes for a webhook, and notifies the service.';
create trigger _100_check before insert or update on api.webhooks for each row execute function content_service.tg_webhooks__check();
create trigger _900_capture after insert or update or delete on api.webhooks for each row execute function content_service.tg_webhooks__capture();

-- Deliveries keep their number: those of one row are sent in their order, and before newer ones of the row that wait.
create function api.replay_webhook_deliveries(webhook text, since timestamptz default '-infinity', until timestamptz default 'infinity') returns bigint as $$
declare
  v_webhook uuid := (select id from api.webhooks where name = webhook);
  v_count bigint;
begin
  if v_webhook is null then
    raise exception 'There is no webhook %', webhook using errcode = 'NTFND';
  end if;
  update content_service.webhook_deliveries set state = 'pending', attempts = 0, due_at = null
    where webhook_id = v_webhook and state = 'dead' and recorded_at between since and until;
  get diagnostics v_count = row_count;
  notify webhooks;
  return v_count;
end;
$$ language plpgsql set search_path = '';
comment on function api.replay_webhook_deliveries is 'Sends the dead deliveries of a webhook again, by when their changes were made. Returns how many there are.';

create function api.discard_webhook_deliveries(webhook text, since timestamptz default '-infinity', until timestamptz default 'infinity') returns bigint as $$
declare
  v_count bigint;
begin
  delete from content_service.webhook_deliveries
    where webhook_id = (select id from api.webhooks where name = webhook) and state = 'dead'
      and recorded_at between since and until;
  get diagnostics v_count = row_count;
  return v_count;
end;
$$ language plpgsql set search_path = '';
comment on function api.discard_webhook_deliveries is 'Deletes the dead deliveries of a webhook, by when their changes were made. Returns how many there were.';

-- A table that was renamed keeps its triggers; a database that was restored without triggers gets them again, and a table that has become a partition gets row
-- triggers. Deliveries that a writer has recorded while their webhook was deleted are deleted, too. Nothing waits long for a lock.
create function content_service.maintain_webhooks() returns void as $$
declare
  v_webhook api.webhooks;
  v_name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('content_service.maintain_webhooks')) then
    return;
  end if;
  perform set_config('lock_timeout', '1s', true);
  for v_webhook in select * from api.webhooks loop
    begin
      select format('%I.%I', nspname, relname) into v_name
        from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = content_service.webhook_table(v_webhook.id);
      if v_name <> v_webhook.table_name then
        update api.webhooks set table_name = v_name where id = v_webhook.id;
      elsif v_name is null and to_regclass(v_webhook.table_name) is not null then
        perform content_service.create_webhook_triggers(v_webhook);
      elsif content_service.is_in_hierarchy(to_regclass(v_name)) and exists (
        select from pg_trigger
        where tgrelid = to_regclass(v_name) and tgname = content_service.webhook_trigger_name(v_webhook.id, v_webhook.events[1]) and tgtype & 1 = 0
      ) then
        perform content_service.drop_webhook_triggers(v_webhook.id);
        perform content_service.create_webhook_triggers(v_webhook);
      end if;
    exception when others then
      raise warning 'Webhook % is not maintained: %', v_webhook.name, sqlerrm;
    end;
  end loop;
  with recursive recorded as (
    (select webhook_id from content_service.webhook_deliveries where state = 'pending' order by webhook_id limit 1)
    union all
    select (
      select webhook_id from content_service.webhook_deliveries
      where state = 'pending' and webhook_id > recorded.webhook_id order by webhook_id limit 1
    ) from recorded where webhook_id is not null
  )
  delete from content_service.webhook_deliveries where state = 'pending' and webhook_id in (
    select webhook_id from recorded where not exists (select from api.webhooks where id = webhook_id)
  );
end;
$$ language plpgsql set search_path = '';
comment on function content_service.maintain_webhooks is 'Follows renamed tables and creates missing triggers; called by the service as the owner.';
