-- A change of address is the mail of the account itself, and what administrators have written is nobody's sign-up.
create or replace function auth.claim_profile(user_id bigint, proof auth.mail_tokens) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(claim_profile.user_id);
  v_is_of_account constant boolean := coalesce(
    proof.purpose in ('email_change_new', 'email_change_current') or proof.password_hash = v_account.password_hash, false
  );
  v_metadata jsonb := auth.merge_metadata('{}', proof.user_metadata);
  v_given_name constant text := nullif(btrim(coalesce(proof.user_name, v_metadata ->> 'name')), '');
  v_usual_name constant text := coalesce(nullif(split_part(auth.own_email(v_account), '@', 1), ''), 'User');
begin
  if v_is_of_account or v_account.is_self_registered is not true and proof.user_name is null then
    return;
  end if;
  -- Metadata of a sign-up for an address that had an account already was not checked then.
  if octet_length(v_metadata::text) > 8192 then
    v_metadata := '{}';
  end if;
  update auth.users as account set raw_user_meta_data = v_metadata where account.user_id = claim_profile.user_id;
  begin
    perform auth.rename_user(claim_profile.user_id, left(coalesce(v_given_name, v_usual_name), 200));
  exception when sqlstate 'WRONG' then
    perform auth.rename_user(claim_profile.user_id, left(v_usual_name, 200));
  end;
  -- Metadata that a sign-up gives stays as it was given, without the name.
  update auth.users as account set raw_user_meta_data = v_metadata
    where account.user_id = claim_profile.user_id and proof.user_metadata is not null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.claim_profile is
  'Gives the account the name and metadata of the sign-up whose proof it is. The caller has locked the account.';
