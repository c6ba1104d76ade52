create or replace function auth.tg_user_roles__end_tokens() returns trigger as $$
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_user_roles__end_tokens is
  'After a change, by whomever: ends the tokens that name the role the user had.';
