-- An insert reports one violated constraint; a form needs all of them at once.
create or replace function auth.account_faults(name text, email text, age integer, username text)
returns setof public.field_error as $$
declare
  v_row constant jsonb := jsonb_build_object('name', name, 'email', email, 'age', age);
  v_rule record;
  v_is_broken boolean;
begin
  for v_rule in
    select rule.conname, pg_get_expr(rule.conbin, rule.conrelid) as condition
    from pg_constraint as rule
    where rule.conrelid = 'public.users'::regclass and rule.contype = 'c'
    order by rule.conkey, rule.conname
  loop
    execute format('select (%s) is false from jsonb_populate_record(null::public.users, $1)', v_rule.condition)
      into v_is_broken using v_row;
    if v_is_broken then
      return next api.field_error('public.users', v_rule.conname);
    end if;
  end loop;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_faults is
  'Everything that prevents such a user from being registered, except values that are taken.';
