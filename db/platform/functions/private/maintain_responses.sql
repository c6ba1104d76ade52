-- Counts what all anonymous callers have: each request would take too long for that, and those that run at the same time would wait for one
-- another. Between two counts more may be kept than the bound, as much as callers send in that time.
create or replace function private.maintain_responses() returns void as $$
declare
  v_count bigint;
  v_bytes bigint;
begin
  delete from private.kept_answers where id in (
    select id from private.kept_answers where expires_at <= now() order by expires_at limit 1000 for update skip locked
  );
  -- What has expired makes room.
  perform private.count_responses(counts.caller_key) from (
    select caller_key from private.kept_answer_counts where counted_at < clock_timestamp() - interval '1 minute'
    order by counted_at limit 20 for update skip locked
  ) as counts;
  delete from private.kept_answer_counts where keys = 0;
  -- Of several processes one counts.
  perform from private.bounds
    where name = 'idempotency keys of all anonymous callers' and used_at < clock_timestamp() - interval '5 seconds'
    for update skip locked;
  if not found then
    return;
  end if;
  select count(*), coalesce(sum(kept.bytes), 0) into v_count, v_bytes
    from private.kept_answers as kept where kept.caller_key like 'address %';
  update private.bounds
    set used_at = clock_timestamp(),
      used = case name when 'idempotency keys of all anonymous callers' then v_count else v_bytes end
    where name in ('idempotency keys of all anonymous callers', 'bytes of kept responses of all anonymous callers');
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_responses is
  'Deletes expired responses, and counts those of anonymous callers; called by the service as the owner.';
