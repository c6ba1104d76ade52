create or replace function api.discard_webhook_deliveries(
  webhook text, since timestamptz default '-infinity', until timestamptz default 'infinity'
) returns bigint as $$
declare
  v_count bigint;
begin
  delete from private.webhook_deliveries
    where webhook_id = (select id from api.webhooks where name = webhook) and state = 'dead'
      and recorded_at between since and until;
  get diagnostics v_count = row_count;
  return v_count;
end;
$$ language plpgsql set search_path = '';
comment on function api.discard_webhook_deliveries is
  'Deletes the dead deliveries of a webhook, by when their changes were made. Returns how many there were.';
