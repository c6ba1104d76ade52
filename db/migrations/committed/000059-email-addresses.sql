--! Previous: sha1:bc4f0ea9a26a18ac8538658e7d58bc875d1d9e11
--! Hash: sha1:95d89837febfa5287c1b98f9c698397e33ab7613
--! Message: email addresses

--! split: 0010-email-addresses.sql
-- Whatever had a sign before and behind one @ was an address: "<ann@example.org>", "ann(x)@example.org", "ann,ben@example.org" and
-- addresses with characters of no width, so that one mailbox had several accounts, and mails went to somebody else. Now it is
-- what HTML calls a valid e-mail address, with dots between words alone, a domain of two labels at least, of which the last
-- begins with a letter, and the lengths of RFC 5321.
-- Not valid: users that are there already stay, and give another address with their next change.
alter table public.users drop constraint if exists users_email_format;
alter table public.users add constraint users_email_format check (
  length(email) <= 254
  and email ~ '^(?=.{1,64}@)[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+)*@([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$'
) not valid;
comment on constraint users_email_format on public.users is 'Give an e-mail address such as name@example.org.';
