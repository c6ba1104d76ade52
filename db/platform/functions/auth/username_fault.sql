create or replace function auth.username_fault(username text, email text) returns text
language sql immutable set search_path = ''
as $$
  select case
    when username like '%@%' and lower(username) <> lower(email)
      then 'A user name with an @ can only be your own e-mail address'
    when username not like '%@%' and username !~ '^[^\s:[:cntrl:]]{1,254}$'
      then 'A user name has 1 to 254 characters, and neither spaces nor colons'
  end
$$;
comment on function auth.username_fault is
  'Why a user with that address cannot have this user name; null when it is acceptable.';
