create or replace function auth.list_linked_providers(user_id bigint)
returns table (name text, title text, linked_at timestamptz, last_used_at timestamptz)
language sql stable
begin atomic
  select providers.name, coalesce(providers.title, initcap(providers.name)), min(identities.created_at), max(identities.last_used_at)
  from auth.identities join auth.providers on providers.issuer = identities.issuer
  where identities.user_id = list_linked_providers.user_id
  group by providers.name
  order by providers.name;
end;

comment on function auth.list_linked_providers is 'The providers through which a user can sign in.';
