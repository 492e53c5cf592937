//! Paging of lists.

use serde_json::{Value, json};

use crate::world::World;

fn names(list: &Value) -> Vec<&str> {
    list["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect()
}

async fn with_jobs(count: usize) -> World {
    let world = World::new().await;
    for n in 0..count {
        world.create(json!({"name": format!("job-{n}"), "source_id": format!("s{}", n % 2)})).await;
    }
    world
}

#[tokio::test]
async fn list_shows_its_total() {
    let world = with_jobs(3).await;
    let mut list = world.get("/api/v1/jobs").await.expect(200);
    assert_eq!(names(&list), ["job-0", "job-1", "job-2"]);
    list.as_object_mut().unwrap().remove("jobs");
    assert_eq!(
        list,
        json!({
            "total": 3, "total_is_estimate": false, "limit": 50, "offset": 0, "next_cursor": null,
        })
    );
}

#[tokio::test]
async fn offsets_and_cursors_page_through_the_same_list() {
    let world = with_jobs(5).await;
    let second = world.get("/api/v1/jobs?limit=2&offset=2").await.expect(200);
    assert_eq!(names(&second), ["job-2", "job-3"]);
    assert_eq!((&second["limit"], &second["offset"]), (&json!(2), &json!(2)));

    let mut seen = Vec::new();
    let mut path = "/api/v1/jobs?limit=2".to_owned();
    loop {
        let page = world.get(&path).await.expect(200);
        seen.extend(names(&page).into_iter().map(String::from));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/jobs?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["job-0", "job-1", "job-2", "job-3", "job-4"]);
}

#[tokio::test]
async fn jobs_are_found_by_name_and_source() {
    let world = with_jobs(4).await;
    let list = world.get("/api/v1/jobs?source_id=s1").await.expect(200);
    assert_eq!(names(&list), ["job-1", "job-3"]);
    let list = world.get("/api/v1/jobs?name_prefix=job-2").await.expect(200);
    assert_eq!((names(&list), &list["total"]), (vec!["job-2"], &json!(1)));
}

#[tokio::test]
async fn jobs_are_found_by_their_texts() {
    let world = with_jobs(3).await;
    let url = "https://news.example.com/feed?key=hidden";
    let metadata = json!({"team": "Blau", "tier": 4711});
    let job =
        json!({"name": "Größe", "url": url, "description": "Reads news", "metadata": metadata});
    world.create(job).await;
    for (query, expected) in [
        ("q=job", vec!["job-0", "job-1", "job-2"]),
        ("q=OB-1", vec!["job-1"]),
        ("q=job&source_id=s0", vec!["job-0", "job-2"]),
        ("q=job&sort=-name&limit=2&offset=1", vec!["job-1", "job-0"]),
        ("q=gr%C3%B6%C3%9Fe", vec!["Größe"]),
        ("q=GRO%CC%88SS", vec![]),
        ("q=example.com/feed+blau+471", vec!["Größe"]),
        ("q=jo", vec!["job-0", "job-1", "job-2"]),
        ("q=ob", vec![]),
        ("q=hidden", vec![]),
        ("q=key%3D", vec!["Größe"]),
    ] {
        let list = world.get(&format!("/api/v1/jobs?{query}")).await.expect(200);
        assert_eq!(names(&list), expected, "{query}");
    }
    let page = world.get("/api/v1/jobs?q=job&limit=2").await.expect(200);
    assert_eq!((names(&page), &page["total"]), (vec!["job-0", "job-1"], &json!(3)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/jobs?q=job&limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!(names(&rest), ["job-2"]);
}

#[tokio::test]
async fn invalid_list_parameters_are_named() {
    let world = World::new().await;
    let runs_cursor = "cgAAAAAAAIAAgAAAAAAAAAA";
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("offset=-1", "offset"),
        ("offset=99999999999", "offset"),
        ("cursor=x", "cursor"),
        (&format!("cursor={runs_cursor}"), "cursor"),
        ("cursor=", "cursor"),
        ("name_prefix=%00", "name_prefix"),
        ("status=dead", "status"),
        ("status=", "status"),
        ("condition=fine", "condition"),
        ("lane=fast", "lane"),
        ("sort=status", "sort"),
        ("sort=", "sort"),
        ("next_run_after=tomorrow", "next_run_after"),
        ("tenant=other", "tenant"),
        ("metadata.=x", "metadata."),
        ("metadata=x", "metadata"),
        ("page=2", "page"),
        ("recent_runs=21", "recent_runs"),
        ("recent_runs=-1", "recent_runs"),
        ("recent_runs=", "recent_runs"),
        ("q=", "q"),
        ("q=%25", "q"),
        ("q=news+-", "q"),
        ("q=a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q", "q"),
    ] {
        let answer = world.get(&format!("/api/v1/jobs?{query}")).await;
        let problem = answer.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{query}");
    }
    let both = world.get("/api/v1/jobs?limit=0&offset=x").await.problem(422, "invalid-parameter");
    assert_eq!(both["errors"].as_array().unwrap().len(), 2);
    world.get("/api/v1/jobs?limit=1000").await.expect(200);
    for path in ["/api/v1/executions", "/healthz"] {
        let answer = world.get(&format!("{path}?limit=0")).await;
        assert_eq!(answer.status.as_u16() == 422, path != "/healthz");
    }
}

#[tokio::test]
async fn offset_and_cursor_exclude_each_other() {
    let world = with_jobs(3).await;
    let page = world.get("/api/v1/jobs?limit=1").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let answer = world.get(&format!("/api/v1/jobs?cursor={cursor}&offset=1")).await;
    assert_eq!(answer.problem(422, "invalid-parameter")["field"], "offset");
    world.get(&format!("/api/v1/jobs?cursor={cursor}&offset=0")).await.expect(200);
}
