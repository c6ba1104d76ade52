-- Whoever comes for an answer that is there finds it and claims nothing: however many come at once, none is in another's
-- way. Of the others one transaction at a time has the place. Who comes second is told so at once instead of being kept
-- waiting here with a connection in hand; once the first was undone the place is free.
create or replace function private.claim_answer(place text, out is_claimed boolean, out answer text) as $$
declare
  v_id bytea := decode(place, 'hex');
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A statement of its own, begun after the lock was had: it sees what the transaction before has committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_answer to authenticator;
comment on function private.claim_answer is
  'Tells what is kept at a place; where that is nothing, claims it for the rest of the transaction unless another one has it.';
