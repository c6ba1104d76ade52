create or replace function private.drop_webhook_triggers(webhook uuid) returns void as $$
declare
  v_trigger record;
begin
  for v_trigger in
    select tgname, tgrelid::regclass as "table" from pg_trigger
    where tgfoid = 'private.tg__webhook()'::regprocedure and tgparentid = 0
      and tgname in (
        private.webhook_trigger_name(webhook, 'INSERT'), private.webhook_trigger_name(webhook, 'UPDATE'),
        private.webhook_trigger_name(webhook, 'DELETE')
      )
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger."table");
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function private.drop_webhook_triggers is 'Drops the triggers that record changes for a webhook, wherever its table is.';
