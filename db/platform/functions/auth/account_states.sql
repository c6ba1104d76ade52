-- Returns no row for unknown users: another issuer that shares the keys may name any subject.
create or replace function auth.account_states(user_ids bigint[])
returns table (user_id bigint, state text, tokens_valid_from bigint)
language sql stable
begin atomic
  select credentials.user_id, case when credentials.disabled_at is null then 'active' else 'disabled' end,
    extract(epoch from credentials.tokens_valid_from)::bigint
  from auth.credentials where credentials.user_id = any (account_states.user_ids)
  union all
  select deleted_accounts.user_id, 'deleted', null
  from auth.deleted_accounts
  where deleted_accounts.user_id = any (account_states.user_ids)
    and not exists (select from auth.credentials where credentials.user_id = deleted_accounts.user_id);
end;

comment on function auth.account_states is 'Which of these accounts are active, disabled or deleted.';
