create or replace function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
returns setof auth.federation_states as $$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash
        and (state.browser_hash = end_federation.browser_hash or state.mode in ('code', 'fragment'))
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation is
  'Deletes and returns the state of a browser that comes back from a provider. No row for a second use.';
