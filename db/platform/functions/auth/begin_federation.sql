create or replace function auth.begin_federation(state_hash bytea, browser_hash bytea, state jsonb, seconds integer)
returns void as $$
begin
  insert into auth.federation_states (
    state_hash, browser_hash, provider, purpose, mode, redirect_to, code_challenge, user_id,
    nonce, code_verifier, request_id, expires_at
  )
    select begin_federation.state_hash, begin_federation.browser_hash, given.provider, given.purpose, given.mode,
      given.redirect_to, given.code_challenge, given.user_id, given.nonce, given.code_verifier, given.request_id,
      now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_states, begin_federation.state) as given;
  delete from auth.federation_states as expired where expired.state_hash in (
    select federation_states.state_hash from auth.federation_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_federation is 'Stores the state of a browser that is redirected to a provider.';
