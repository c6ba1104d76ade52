-- One second later than the latest token that was issued.
create or replace function auth.end_access_tokens(user_id bigint) returns void as $$
  update auth.users as account
  set tokens_valid_from = greatest(date_trunc('second', clock_timestamp()), tokens_valid_from) + interval '1 second'
  where account.user_id = end_access_tokens.user_id;
$$ language sql set search_path = '';
comment on function auth.end_access_tokens is 'Ends all access tokens of the user; new ones can be issued at once.';
