-- The rules of the example application's public.users, which replaces this function by one that reads the constraints there.
create or replace function auth.account_faults(name text, email text, age integer, username text)
returns setof public.field_error as $$
begin
  if name is not null and name !~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]' then
    return next row('name', 'Give a name.')::public.field_error;
  elsif length(name) > 200 then
    return next row('name', 'Give a name of at most 200 characters.')::public.field_error;
  end if;
  if length(email) > 254 or email !~ '^(?=.{1,64}@)[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+)*@([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$' then
    return next row('email', 'Give an e-mail address such as name@example.org.')::public.field_error;
  end if;
  if age not between 0 and 150 then
    return next row('age', 'Give an age between 0 and 150, or none.')::public.field_error;
  end if;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_faults is
  'Everything that prevents such a user from being registered, except values that are taken.';
