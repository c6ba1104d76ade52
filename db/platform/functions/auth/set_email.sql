create or replace function auth.set_email(user_id bigint, email text) returns void as $$
begin
  update auth.users as account set
      email = set_email.email,
      username = case
        when lower(account.username) = lower(account.email) or account.is_anonymous then set_email.email
        else account.username
      end
    where account.user_id = set_email.user_id;
exception when unique_violation then
  raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
