create or replace function auth.list_providers()
returns table (name text, kind text, title text, issuer text, client_id text, enabled boolean, sign_ups boolean, identities bigint)
language sql stable
begin atomic
  select providers.name, providers.kind, coalesce(providers.title, initcap(providers.name)), providers.issuer,
    providers.client_id, providers.enabled, providers.sign_ups,
    (select count(*) from auth.identities where identities.issuer = providers.issuer)
  from auth.providers order by providers.name;
end;

comment on function auth.list_providers is 'The identity providers, without secrets.';
