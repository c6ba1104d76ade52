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
