--! Previous: sha1:b3db30a2db8933f383cbfd3f3f0e981e77fd4138
--! Hash: sha1:d97d39d9fb00c3840b53714339ad7155f98c530d
--! Message: article mutations

-- The GraphQL mutations of articles. The generated insert, update and delete say neither why nothing happened nor which field is at
-- fault.
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

--! Included public/create_article.sql
-- Errors of the input are returned as data, so that a form can show them beside its fields.
create or replace function public.create_article(
  title text,
  content text,
  tags text[] default null,
  status public.article_status default 'DRAFT'
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
comment on function public.create_article is
  'Write an article as the user who is signed in. What is wrong with the input comes back in errors.';
--! EndIncluded public/create_article.sql
--! Included public/update_article.sql
-- Runs as the caller, so policies decide; afterwards it finds out why nothing was updated. Null leaves a column unchanged: none of the
-- four is nullable.
create or replace function public.update_article(
  id bigint,
  title text default null,
  content text default null,
  tags text[] default null,
  status public.article_status default null
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
--! EndIncluded public/update_article.sql
--! Included public/publish_article.sql
create or replace function public.publish_article(id bigint) returns public.articles as $$
  select public.update_article(publish_article.id, status => 'PUBLISHED');
$$ language sql volatile set search_path = '';
grant execute on function public.publish_article to anon, authenticated, service_role;
comment on function public.publish_article is 'Give an article of yours the status PUBLISHED.';
--! EndIncluded public/publish_article.sql
--! Included public/publish.sql
-- In the conventional interface an action is a function that takes the row; GraphQL has publishArticle instead.
create or replace function public.publish(article public.articles) returns public.articles as $$
  select public.publish_article(article.id);
$$ language sql volatile set search_path = '';
grant execute on function public.publish to anon, authenticated, service_role;
comment on function public.publish is e'@behavior -*\nGive this article the status PUBLISHED.';
--! EndIncluded public/publish.sql
--! Included public/delete_article.sql
create or replace function public.delete_article(id bigint) returns boolean as $$
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
comment on function public.delete_article is
  'Delete an article of yours and its comments. False when there is no such article.';
--! EndIncluded public/delete_article.sql
