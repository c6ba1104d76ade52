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
