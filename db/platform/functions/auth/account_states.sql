-- Returns no row for unknown users: another issuer that shares the keys may name any subject.
create or replace function auth.account_states(user_ids bigint[])
returns table (user_id bigint, state text, tokens_valid_from bigint)
language sql stable
begin atomic
  select account.user_id,
    case when account.deleted_at is not null then 'deleted' when auth.is_disabled(account) then 'disabled' else 'active' end,
    extract(epoch from account.tokens_valid_from)::bigint
  from auth.users as account where account.user_id = any (account_states.user_ids)
  union all
  select deleted_accounts.user_id, 'deleted', null
  from auth.deleted_accounts
  where deleted_accounts.user_id = any (account_states.user_ids)
    and not exists (select from auth.users as account where account.user_id = deleted_accounts.user_id);
end;

comment on function auth.account_states is 'Which of these accounts are active, disabled or deleted.';
