--! Previous: sha1:365ae8d74bf0bdb419529cf7f43f0199b0406ee8
--! Hash: sha1:731e436d07311f5ca448b9636a7f7c93632f36e7
--! Message: blank-texts

--! split: 1-current.sql
-- The new chapter goes here, one subject per file: 0010-tags.sql, 0020-likes.sql. Rename or delete this file then.
-- See db/README.md.

--! split: 0010-blank-texts.sql
-- btrim takes away blanks alone: a tab, a no-break space or a character of no width passed for a name or a comment. Now
-- something has to be there beside white space, control characters and what nobody sees. [[:space:]] would not do: what it
-- holds depends on the database's locale, and it knows nothing of no width.
-- Not valid: rows that are there already stay, and stand in nobody's way until they are changed.
alter table public.users drop constraint if exists users_name_present;
alter table public.users add constraint users_name_present check (
  name ~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]'
) not valid;
comment on constraint users_name_present on public.users is 'Give a name.';

alter table public.comments drop constraint if exists comments_content_present;
alter table public.comments add constraint comments_content_present check (
  content ~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]'
) not valid;
comment on constraint comments_content_present on public.comments is 'Write something: a comment may not be empty.';
