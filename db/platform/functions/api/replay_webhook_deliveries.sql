-- Deliveries keep their number: those of one row are sent in their order, and before newer ones of the row that wait.
create or replace function api.replay_webhook_deliveries(
  webhook text, since timestamptz default '-infinity', until timestamptz default 'infinity'
) returns bigint as $$
declare
  v_webhook uuid := (select id from api.webhooks where name = webhook);
  v_count bigint;
begin
  if v_webhook is null then
    raise exception 'There is no webhook %', webhook using errcode = 'NTFND';
  end if;
  update private.webhook_deliveries set state = 'pending', attempts = 0, due_at = null
    where webhook_id = v_webhook and state = 'dead' and recorded_at between since and until;
  get diagnostics v_count = row_count;
  notify webhooks;
  return v_count;
end;
$$ language plpgsql set search_path = '';
comment on function api.replay_webhook_deliveries is
  'Sends the dead deliveries of a webhook again, by when their changes were made. Returns how many there are.';
