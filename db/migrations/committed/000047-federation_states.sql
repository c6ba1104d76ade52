--! Previous: sha1:22082829db4c7fb1ddcc2a87a4b88f39e211aa17
--! Hash: sha1:5aac9406eb02ce7ebb68ea414c3176e0a0d34ede
--! Message: federation_states

--! split: 0010-federation_states.sql
-- A deletion that returns rows is no standard body's last statement for a function that returns rows of a table.
--! Included auth/end_federation.sql
create or replace function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
returns setof auth.federation_states as $$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash and state.browser_hash = end_federation.browser_hash
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation is
  'What was remembered of a browser that comes back from that provider. Once: no row to whoever comes with the same.';
--! EndIncluded auth/end_federation.sql
