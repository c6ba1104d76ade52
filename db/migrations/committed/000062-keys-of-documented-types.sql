--! Previous: sha1:1e5c1c4e7ea8765475b375c2f4cabd40f9998004
--! Hash: sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4
--! Message: keys of documented types

--! split: 0010-keys-of-documented-types.sql
-- GraphQL shows the columns of foreign keys beside what they refer to; the documented types have no fields but their own.
comment on column public.articles.author_id is e'@behavior -attribute:select\nThe user who wrote it.';
comment on column public.comments.article_id is e'@behavior -attribute:select\nThe article it is about.';
comment on column public.comments.author_id is e'@behavior -attribute:select\nThe user who wrote it.';
