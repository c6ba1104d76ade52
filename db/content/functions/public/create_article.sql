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
