--! Previous: sha1:91532914ce965ed5b2994cdc8d547e413ede729e
--! Hash: sha1:4c9a063abc6a17e31df5f13e7fa08715363610fa

-- The GraphQL mutations of articles and comments. The generated insert, update and delete say neither why nothing happened nor which field is at fault.
create type public.mutation_result as (
  success boolean,
  message text,
  article public.articles,
  errors  public.field_error[]
);
comment on type public.mutation_result is 'How a mutation went, for a caller who wants faults as data.';
comment on column public.mutation_result.success is e'@notNull\nWhether it was done.';
comment on column public.mutation_result.message is 'What happened, in a sentence.';
comment on column public.mutation_result.article is 'The article, when it was done.';
comment on column public.mutation_result.errors is e'@notNullItems\nThe faults of the input, when it was not.';

-- Errors of the input are returned as data, so that a form can show them beside its fields.
create function public.create_article(
  title text, content text, tags text[] default null, status public.article_status default 'DRAFT'
) returns public.mutation_result as $$
declare
  v_article public.articles;
  v_result public.mutation_result;
  v_constraint text;
begin
  v_result.success := false;
  if auth.uid() is null then
    v_result.message := 'Login required: sign in to write an article.';
    return v_result;
  end if;

  insert into public.articles (title, content, tags, status)
    values (
      create_article.title,
      create_article.content,
      coalesce(create_article.tags, '{}'),
      coalesce(create_article.status, 'DRAFT')
    )
    returning * into v_article;
  v_result.success := true;
  v_result.message := 'The article was created.';
  v_result.article := v_article;
  return v_result;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_result.message := 'The article was not created: see errors.';
  v_result.errors := array[api.field_error('public.articles', v_constraint)];
  return v_result;
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_article to anon, authenticated, service_role;
comment on function public.create_article is 'Write an article as the user who is signed in. What is wrong with the input comes back in errors.';

-- Runs as the caller, so policies decide; afterwards it finds out why nothing was updated. Null leaves a column unchanged: none of the four is nullable.
create function public.update_article(
  id bigint, title text default null, content text default null, tags text[] default null, status public.article_status default null
) returns public.articles as $$
declare
  v_article public.articles;
begin
  -- A caller that bypasses policies (service_role) needs no account.
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to change an article' using errcode = 'LOGIN';
  end if;

  update public.articles as article
    set
      title = coalesce(update_article.title, article.title),
      content = coalesce(update_article.content, article.content),
      tags = coalesce(update_article.tags, article.tags),
      status = coalesce(update_article.status, article.status)
    where article.id = update_article.id
    returning * into v_article;
  if found then
    return v_article;
  end if;

  if exists (select from public.articles as article where article.id = update_article.id) then
    raise exception 'Only its author may change this article' using errcode = 'NOPER';
  end if;
  raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'id';
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.update_article to anon, authenticated, service_role;
comment on function public.update_article is 'Change an article of yours. What is left out stays as it is.';

create function public.publish_article(id bigint) returns public.articles as $$
  select public.update_article(publish_article.id, status => 'PUBLISHED');
$$ language sql volatile set search_path = '';
grant execute on function public.publish_article to anon, authenticated, service_role;
comment on function public.publish_article is 'Give an article of yours the status PUBLISHED.';

-- In the conventional interface an action is a function that takes the row; GraphQL has publishArticle instead.
create function public.publish(article public.articles) returns public.articles as $$
  select public.publish_article(article.id);
$$ language sql volatile set search_path = '';
grant execute on function public.publish to anon, authenticated, service_role;
comment on function public.publish is e'@behavior -*\nGive this article the status PUBLISHED.';

create function public.delete_article(id bigint) returns boolean as $$
begin
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to delete an article' using errcode = 'LOGIN';
  end if;

  delete from public.articles as article where article.id = delete_article.id;
  if found then
    return true;
  end if;

  if exists (select from public.articles as article where article.id = delete_article.id) then
    raise exception 'Only its author may delete this article' using errcode = 'NOPER';
  end if;
  return false;
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.delete_article to anon, authenticated, service_role;
comment on function public.delete_article is 'Delete an article of yours and its comments. False when there is no such article.';

create function public.create_comment(article_id bigint, content text) returns public.comments as $$
declare
  v_comment public.comments;
begin
  if auth.uid() is null then
    raise exception 'Sign in to write a comment' using errcode = 'LOGIN';
  end if;
  if not exists (select from public.articles where articles.id = create_comment.article_id) then
    raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'article_id';
  end if;
  insert into public.comments (article_id, content) values (create_comment.article_id, create_comment.content)
    returning * into v_comment;
  return v_comment;
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_comment to anon, authenticated, service_role;
comment on function public.create_comment is 'Comment on an article, as the user who is signed in.';

-- Articles found by what they contain, and those that share tags.
create extension if not exists pg_trgm with schema extensions;

-- Declared immutable for the index. array_to_string is only stable, because the text of some types depends on settings; that of text does not.
create function content_service.article_text(title text, tags text[], content text) returns text
language sql immutable parallel safe cost 1000
return title || e'\n' || array_to_string(tags, e'\n') || e'\n' || content;
grant execute on function content_service.article_text to anon, authenticated, service_role;
comment on function content_service.article_text is 'The text of an article for substring search.';

-- 'simple', not 'english': articles are written in any language, and stemming for one spoils the others. Postgres limits a document to 1 MB (54000); 1,000
-- characters of the title and 200,000 of the content always fit. The cost is realistic, and makes the planner use the index instead of parsing every article.
create function content_service.article_document(title text, tags text[], content text) returns tsvector
language sql immutable parallel safe cost 10000
return setweight(to_tsvector('pg_catalog.simple', left(title, 1000)), 'A')
  || setweight(to_tsvector('pg_catalog.simple', array_to_string(tags, ' ')), 'B')
  || setweight(to_tsvector('pg_catalog.simple', left(content, 200000)), 'C');
grant execute on function content_service.article_document to anon, authenticated, service_role;
comment on function content_service.article_document is 'The text of an article for full-text search: title before tags before content.';

create function content_service.containing(keyword text) returns text
language sql immutable parallel safe
return '%' || regexp_replace(left(keyword, 1000), '([\\%_])', '\\\1', 'g') || '%';
grant execute on function content_service.containing to anon, authenticated, service_role;
comment on function content_service.containing is 'The pattern for like and ilike that finds the keyword (its first 1,000 characters) anywhere; wildcards are escaped.';

create index articles_document on public.articles using gin (content_service.article_document(title, tags, content));
create index articles_text on public.articles using gin (content_service.article_text(title, tags, content) extensions.gin_trgm_ops);

-- Bodies of functions of rows are strings, whose names are resolved as the caller, who has no USAGE on schema content_service: so what they call is in schema api.

-- As the owner, because Postgres uses the indexes of substrings, documents and tags only where no policy has to be checked before: their operators are not
-- leakproof. Callers receive the ids in queries that apply the policies to the articles themselves. Substrings, and languages written without spaces, are found
-- in content_service.article_text; separate words in content_service.article_document. Each has its index. A union instead of "or", which would check every hit of one index
-- against the other expression (120 µs to parse a document of 2 kB); a single word needs the first only. The keyword is cut: one of a million words exceeds a
-- limit of Postgres (54000), and cannot be cancelled before that.
create function content_service.articles_containing(keyword text) returns setof bigint as $$
  select part.id from public.articles as part
  where content_service.article_text(part.title, part.tags, part.content) ilike content_service.containing(keyword)
  union
  select word.id from public.articles as word
  where btrim(keyword) ~ '[^[:alnum:]]'
    and content_service.article_document(word.title, word.tags, word.content)
      @@ plainto_tsquery('simple', left(keyword, 1000));
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function content_service.articles_containing to anon, authenticated, service_role;
comment on function content_service.articles_containing is 'The ids of all articles with the keyword, whoever may read them.';

-- As the owner, for the same reason as content_service.articles_containing.
create function content_service.articles_sharing(tags text[]) returns setof bigint as $$
  select articles.id from public.articles where articles.tags && articles_sharing.tags;
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function content_service.articles_sharing to anon, authenticated, service_role;
comment on function content_service.articles_sharing is 'The ids of all articles with one of the tags, whoever may read them.';

-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create function api.matching_articles(keyword text) returns setof bigint
language sql stable parallel safe rows 20
begin atomic
  select article.id
  from public.articles as article
  where btrim(keyword) <> '' and article.id in (select found.id from content_service.articles_containing(keyword) as found (id));
end;
grant execute on function api.matching_articles to anon, authenticated, service_role;
comment on function api.matching_articles is 'The ids of the articles with the keyword that the caller may read.';

-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create function api.related_articles(article_id bigint, tags text[], "limit" integer) returns setof bigint
language sql stable parallel safe rows 5
begin atomic
  select other.id
  from public.articles as other
  where other.id in (select found.id from content_service.articles_sharing(related_articles.tags) as found (id))
    and other.id <> related_articles.article_id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(related_articles.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
end;
grant execute on function api.related_articles to anon, authenticated, service_role;
comment on function api.related_articles is 'The ids of other articles with one of the tags, those with the most tags in common first.';

-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
-- Ranking reads whole articles, so at most a thousand are ranked, those with a hit in the title first. word_similarity takes time
-- quadratic in the length (6 s for 100,000 characters), so only the beginnings are compared.
create function api.search_articles(keyword text) returns setof bigint
language sql stable parallel safe rows 20
begin atomic
  select candidate.id
  from (
    select article.id, article.title, article.tags, article.content, article.created_at
    from public.articles as article
    where article.id in (select found.id from api.matching_articles(keyword) as found (id))
    order by article.title ilike content_service.containing(keyword) desc, article.created_at desc, article.id desc
    limit 1000
  ) as candidate
  order by
    (candidate.title ilike content_service.containing(keyword))::integer
      + extensions.word_similarity(left(keyword, 200), left(candidate.title, 200))
      + ts_rank(content_service.article_document(candidate.title, candidate.tags, candidate.content), plainto_tsquery('simple', left(keyword, 1000))) desc,
    candidate.created_at desc,
    candidate.id desc;
end;
grant execute on function api.search_articles to anon, authenticated, service_role;
comment on function api.search_articles is 'The ids of the articles with the keyword that the caller may read, the best match first.';

create function public.articles_matching(keyword text) returns setof public.articles as $$
  select article.*
  from public.articles as article
  where article.id in (select found.id from api.matching_articles(keyword) as found (id));
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.articles_matching to anon, authenticated, service_role;
comment on function public.articles_matching is e'@behavior -*\n@filter\nArticles with the keyword in title, tags or content.';

create function public.articles_related_articles(article public.articles, "limit" integer default 5) returns setof public.articles as $$
  select other.*
  from api.related_articles(article.id, article.tags, "limit") with ordinality as found (id, position)
  join public.articles as other on other.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 5 set search_path = '';
grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is 'Other articles that share a tag with this one, those with the most tags in common first.';

create function public.search(keyword text) returns setof public.articles as $$
  select article.*
  from api.search_articles(keyword) with ordinality as found (id, position)
  join public.articles as article on article.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 20 set search_path = '';
grant execute on function public.search to anon, authenticated, service_role;
comment on function public.search is 'Articles with the keyword in title, tags or content, the best match first.';
