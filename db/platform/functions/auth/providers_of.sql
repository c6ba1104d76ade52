create or replace function auth.providers_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select coalesce(jsonb_agg(way.name order by way.since, way.name), '[]')
  from (
    select 'email' as name, account.created_at as since from auth.users as account
    where account.user_id = providers_of.user_id and auth.own_email(account) is not null
      and (account.password_hash is not null or not exists (
        select from auth.identities where identities.user_id = account.user_id
      ))
    union all
    select 'phone', account.phone_confirmed_at from auth.users as account
    where account.user_id = providers_of.user_id and account.phone_confirmed_at is not null
    union all
    select providers.name, min(identities.created_at)
    from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = providers_of.user_id
    group by providers.name
  ) as way;
end;

comment on function auth.providers_of is 'How the user can sign in, the first one first: email, phone, and names of identity providers.';
