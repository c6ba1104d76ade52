--! Previous: sha1:f3ba0b35b9a61cd74242aea244f71727980f25b7
--! Hash: sha1:d548cba8a7f5736e4f5983966da83ecf3e1f9f64
--! Message: open requests of applications

-- Requests of applications that nobody has opened yet are bounded by network and by client too: a flood evicts what the same network has begun,
-- then what was begun for the same client, and nothing else before all of them are full.
insert into content_service.bounds (name, bound) values ('unopened authorizations of a network', 100), ('unopened authorizations of a client', 1000);

alter table auth.oauth_authorizations add column network inet not null default '0.0.0.0';
comment on column auth.oauth_authorizations.network is 'The network that has begun it: an IPv4 address, or an IPv6 address''s /64; 0.0.0.0 if it is not known.';
drop index auth.oauth_authorizations_of_nobody;
create index oauth_authorizations_unopened on auth.oauth_authorizations (client_id, network, created_at) where user_id is null;
create index oauth_authorizations_unopened_of_network on auth.oauth_authorizations (network, created_at) where user_id is null;

create function auth.trim_oauth_authorizations(client_id text, network inet) returns void as $$
declare
  v_client_id text := trim_oauth_authorizations.client_id;
begin
  delete from auth.oauth_authorizations as expired where expired.id in (
    select old.id from auth.oauth_authorizations as old where old.expires_at < now()
    order by old.expires_at limit 10 for update skip locked
  );
  delete from auth.oauth_authorizations as own where own.id in (
    select old.id from auth.oauth_authorizations as old where old.user_id is null and old.network = trim_oauth_authorizations.network
    order by old.created_at desc offset content_service.bound('unopened authorizations of a network') - 1 limit 10 for update skip locked
  );
  if (select count(*) from (
    select from auth.oauth_authorizations as old where old.user_id is null limit content_service.bound('rows of auth.oauth_authorizations')
  ) as counted) >= content_service.bound('rows of auth.oauth_authorizations') then
    -- The client with most of them, whichever this one is.
    select old.client_id into v_client_id from auth.oauth_authorizations as old where old.user_id is null
      group by old.client_id order by count(*) desc, min(old.created_at) limit 1;
  elsif (select count(*) from (
    select from auth.oauth_authorizations as old where old.user_id is null and old.client_id = v_client_id
    limit content_service.bound('unopened authorizations of a client')
  ) as counted) < content_service.bound('unopened authorizations of a client') then
    return;
  end if;
  delete from auth.oauth_authorizations as crowded where crowded.id in (
    select old.id from auth.oauth_authorizations as old
    where old.user_id is null and old.client_id = v_client_id and old.network = (
      select most.network from auth.oauth_authorizations as most where most.user_id is null and most.client_id = v_client_id
      group by most.network order by count(*) desc, min(most.created_at) limit 1
    )
    order by old.created_at limit 1 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.trim_oauth_authorizations is 'Makes room for another request of an application, of this client and from this network.';

drop function auth.begin_oauth_authorization(jsonb, integer);
create or replace function auth.begin_oauth_authorization(authorization_request jsonb, seconds integer, client_info auth.client_info default null) returns uuid as $$
declare
  v_new constant auth.oauth_authorizations := jsonb_populate_record(null::auth.oauth_authorizations, authorization_request);
  v_network constant inet := coalesce(auth.network_of(client_info.address), '0.0.0.0');
  v_id uuid;
begin
  perform auth.trim_oauth_authorizations(v_new.client_id, v_network);
  insert into auth.oauth_authorizations (client_id, redirect_uri, scopes, resource, challenge, state, nonce, asks_always, network, expires_at)
    values (
      v_new.client_id, v_new.redirect_uri, v_new.scopes, v_new.resource, v_new.challenge, v_new.state, v_new.nonce,
      coalesce(v_new.asks_always, false), v_network, now() + make_interval(secs => seconds)
    ) returning id into v_id;
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_oauth_authorization is 'Stores the request of an application for access, until the user has decided.';
