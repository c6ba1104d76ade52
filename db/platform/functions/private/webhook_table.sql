create or replace function private.webhook_table(webhook uuid) returns regclass
begin atomic
  select tgrelid::regclass from pg_trigger
  where tgfoid = 'private.tg__webhook()'::regprocedure and tgparentid = 0 and tgargs = convert_to(webhook::text, 'UTF8') || '\x00'::bytea
  limit 1;
end;
comment on function private.webhook_table is 'The table that has the triggers of a webhook, whatever it is called by now.';
