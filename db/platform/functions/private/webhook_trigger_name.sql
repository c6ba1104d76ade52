create or replace function private.webhook_trigger_name(webhook uuid, event text) returns text
language sql immutable
return '_950_webhook_' || lower(event) || '_' || replace(webhook::text, '-', '');
comment on function private.webhook_trigger_name is 'The name of the trigger that records one kind of change for a webhook.';
