--! Previous: sha1:a89dc9c585024dadcdfbb4ffdfb0cfacb0e5eb1d
--! Hash: sha1:23b9a39625080add3058aaf737268ea7626dbf9f
--! Message: user_resource

--! split: 0010-user_resource.sql
-- The conventional interface serves users at /users as well, by the documented rules of the user resource. Clients of
-- its version 1 know the fields of those documents and no other: avatar is a field since version 2.
comment on table public.users is
  e'@root user\n@list\n@behavior -resource:update -resource:delete\nA person who writes articles and comments.';
comment on column public.users.avatar is e'@since 2\nThe address of a picture.';
