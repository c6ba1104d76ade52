create or replace function auth.find_mail_token(token_hash bytea, purpose text)
returns table (user_id bigint, username text, email text)
language sql stable
begin atomic
  select token.user_id, account.username, token.email
  from auth.mail_tokens as token
  cross join lateral auth.profile_of(token.user_id) as profile
  left join auth.users as account on account.user_id = token.user_id
  where token.token_hash = find_mail_token.token_hash and token.purpose = find_mail_token.purpose
    and token.expires_at > now() and not auth.is_disabled(account)
    and lower(token.email) = case token.purpose
      when 'reset' then lower(coalesce(account.verified_email, profile.email))
      else lower(profile.email)
    end;
end;

comment on function auth.find_mail_token is 'The user of a valid mail token.';
