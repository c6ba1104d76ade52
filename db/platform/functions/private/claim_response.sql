-- A stored response is returned without claiming the id, so concurrent retries do not wait for one another. Otherwise one transaction at
-- a time has the id; a second one is told at once instead of waiting with a connection. After a rollback the id is free.
-- A caller beyond the bounds is refused before the change is made. Roles that bypass policies are servers of the operator.
create or replace function private.claim_response(
  place text, caller_key text default '', role text default null, out is_claimed boolean, out answer text
) as $$
declare
  v_id bytea := decode(place, 'hex');
  v_is_anonymous boolean := caller_key like 'address %';
  v_bound bigint;
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
  if is_claimed and answer is null and not exists (
    select from pg_roles where rolname = claim_response.role and rolbypassrls
  ) then
    v_bound := private.bound(
      case when v_is_anonymous then 'idempotency keys of an anonymous caller' else 'idempotency keys of a caller' end
    );
    if (select own.keys >= v_bound from private.responses_of_caller(claim_response.caller_key) as own) or v_is_anonymous and exists (
      select from private.bounds where name = 'idempotency keys of all anonymous callers' and used >= bound
    ) then
      raise exception 'Too many Idempotency-Keys' using errcode = 'TOMNY', detail = 'Nothing was changed.',
        hint = 'Each key is kept for a day. Send the request without a key, or later.';
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_response to authenticator;
comment on function private.claim_response is
  'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';
