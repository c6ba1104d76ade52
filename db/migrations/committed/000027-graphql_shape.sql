--! Previous: sha1:8da6a57f62b5594d740724b86280ceae0c419953
--! Hash: sha1:f2582ebe9877b34ca1c3cc070b1f42e15ed5828a
--! Message: graphql_shape

--! split: 0010-graphql_shape.sql
-- How the tables look in GraphQL, where its conventions alone would not give the documented schema. Tables are
-- connections there unless they say @list, and rows come by key unless a table says @order.
comment on table public.users is
  '@list
@behavior -resource:update -resource:delete
A person who writes articles and comments.';

comment on table public.articles is
  '@order created_at desc
@behavior -list:offset
@subscription onArticleCreated on:insert notNull
@subscription onArticleUpdated on:update by:id?
A text of one author.';
-- A function shows these two, under the same names.
comment on column public.articles.title is 'At least 5 characters.';
comment on column public.articles.summary is 'The author''s own summary; null when there is none.';
comment on column public.articles.tags is e'@notNullItems\nWords to find it by.';

comment on table public.article_translations is
  e'@behavior -manyRelation:resource:list\nThe title of an article in another language.';

-- Comments are read with their article and written by create_comment().
comment on table public.comments is
  '@behavior -query:*:* -list:offset -resource:update -resource:delete
@subscription onCommentAdded on:insert by:article_id notNull
What a user says about an article.';
comment on column public.comments.updated_at is
  e'@behavior -attribute:select\nWhen it was last changed; null when it never was.';
comment on constraint comments_author_id_fkey on public.comments is
  e'@behavior -manyRelation:resource:list\nThe author must be a user who exists.';

comment on column public.mutation_result.errors is e'@notNullItems\nThe faults of the input, when it was not.';

--! Included public/search.sql
-- Parts of words, and languages written without spaces, are found in the text; words that stand apart in the document.
-- Each has its index. Two queries instead of an "or", which would have every hit of the one index checked against the
-- other expression (120 µs to parse a document of 2 kB); and a single word needs the first only.
-- Ranking reads whole articles, so it is done for a thousand at most, those with a hit in the title first.
-- A standard body, because a caller may not name what is in schema private; it returns whole rows ("select article"),
-- because article.* would be frozen to the columns of today.
create or replace function public.search(keyword text) returns setof public.articles
language sql stable parallel safe rows 20
begin atomic
  select candidate.article
  from (
    select article
    from public.articles as article
    where btrim(keyword) <> '' and article.id in (
      select part.id from public.articles as part
      where private.article_text(part.title, part.tags, part.content) ilike private.containing(keyword)
      union
      select word.id from public.articles as word
      where btrim(keyword) ~ '[^[:alnum:]]'
        and private.article_document(word.title, word.tags, word.content) @@ plainto_tsquery('simple', keyword)
    )
    order by article.title ilike private.containing(keyword) desc, article.created_at desc, article.id desc
    limit 1000
  ) as candidate
  order by
    ((candidate.article).title ilike private.containing(keyword))::integer
      + extensions.word_similarity(keyword, (candidate.article).title)
      + ts_rank(
          private.article_document(
            (candidate.article).title, (candidate.article).tags, (candidate.article).content
          ),
          plainto_tsquery('simple', keyword)
        ) desc,
    (candidate.article).created_at desc,
    (candidate.article).id desc;
end;

grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is
  e'@filter\nArticles with the keyword in title, tags or content, the best match first.';
--! EndIncluded public/search.sql
