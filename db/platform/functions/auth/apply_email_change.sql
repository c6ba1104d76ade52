-- Both sides have confirmed it. The first proof of an account ends all that was there before.
create or replace function auth.apply_email_change(account auth.users, proof auth.mail_tokens, client_info auth.client_info)
returns void as $$
begin
  if account.verified_email is null and account.phone_confirmed_at is null then
    perform auth.claim_account(account.user_id, proof, client_info);
  end if;
  perform auth.set_confirmed_email(account.user_id, proof.new_email, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address to one that was proved. The caller has locked the account.';
