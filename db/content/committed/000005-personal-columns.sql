--! Previous: sha1:4c9a063abc6a17e31df5f13e7fa08715363610fa
--! Hash: sha1:81ad82dc9761f9db9749280048dcd76cd0fd6874
--! Message: personal columns

-- What a branch for developers does not show; see "Branches" in db/README.md.
comment on column public.users.name is e'@anonymize name\nThe name others see, at most 200 characters.';
comment on column public.users.email is e'@personal users_own_email\n@anonymize email\nUnique among users, whatever its case.';
comment on column public.users.age is e'@anonymize null\nIn years; null when not told.';
comment on column public.users.avatar is e'@since 2\n@anonymize null\nThe address of a picture.';
