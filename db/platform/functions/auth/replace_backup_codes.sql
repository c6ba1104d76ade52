create or replace function auth.replace_backup_codes(user_id bigint, code_hashes text[]) returns void as $$
begin
  delete from auth.mfa_backup_codes as code where code.user_id = replace_backup_codes.user_id;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select replace_backup_codes.user_id, code_hash from unnest(code_hashes) as code_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.replace_backup_codes is 'Replaces all backup codes of the user. The caller has locked the account.';
