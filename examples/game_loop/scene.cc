// A Bullet world as its manual sets one up: dynamic AABB tree, sequential-impulse solver, one fixed step a frame.
#include "scene.h"

#include <btBulletDynamicsCommon.h>

namespace game {
namespace {

constexpr float kStepSeconds = 1.0f / 60;
constexpr float kBrickX = 0.5f, kBrickY = 0.25f, kBrickZ = 0.25f;  // half sizes
constexpr float kCube = 0.35f;
constexpr float kBall = 0.55f;

Vec3 FromBullet(const btVector3& v) { return {v.x(), v.y(), v.z()}; }

// The look of a body, which Bullet keeps for us as a number.
enum Look { kBrick, kStone, kIron };

void SetColour(Body& body, int look, size_t index) {
  static constexpr uint8_t kColours[][3] = {{196, 92, 62}, {120, 150, 196}, {236, 188, 64}};
  const float shade = look == kIron ? 1.0f : 0.86f + 0.28f * Random01(index * 77 + 5);
  for (int c = 0; c < 3; ++c) {
    const float value = static_cast<float>(kColours[look][c]) * shade;
    body.rgb[c] = static_cast<uint8_t>(value < 255 ? value : 255);
  }
}

}  // namespace

struct Scene::World {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btDbvtBroadphase broadphase;
  btSequentialImpulseConstraintSolver solver;
  btDiscreteDynamicsWorld dynamics{&dispatcher, &broadphase, &solver, &configuration};
  btStaticPlaneShape ground_shape{btVector3(0, 1, 0), 0};
  btBoxShape brick_shape{btVector3(kBrickX, kBrickY, kBrickZ)};
  btBoxShape half_brick_shape{btVector3(kBrickX / 2, kBrickY, kBrickZ)};
  btBoxShape cube_shape{btVector3(kCube, kCube, kCube)};
  btSphereShape ball_shape{kBall};
  std::vector<std::unique_ptr<btRigidBody>> rigid;

  ~World() {
    for (auto& body : rigid) dynamics.removeRigidBody(body.get());
  }

  btRigidBody& Add(btCollisionShape& shape, float mass, const btVector3& at, Look look) {
    btVector3 inertia(0, 0, 0);
    if (mass > 0) shape.calculateLocalInertia(mass, inertia);
    btRigidBody::btRigidBodyConstructionInfo info(mass, nullptr, &shape, inertia);
    info.m_startWorldTransform.setOrigin(at);
    info.m_friction = 0.65f;
    info.m_restitution = 0.1f;
    rigid.push_back(std::make_unique<btRigidBody>(info));
    btRigidBody& body = *rigid.back();
    body.setUserIndex(look);
    dynamics.addRigidBody(&body);
    return body;
  }

  // Running bond: every other course is shifted by half a brick, and closed by half bricks at its ends.
  void AddWall(int columns, int courses, float z) {
    const float left = -kBrickX * static_cast<float>(columns);
    for (int course = 0; course < courses; ++course) {
      const float y = kBrickY * static_cast<float>(2 * course + 1);
      const bool shifted = course % 2 == 1;
      const float first = left + (shifted ? 2 * kBrickX : kBrickX);
      for (int column = 0; column < columns - (shifted ? 1 : 0); ++column)
        Add(brick_shape, 2, {first + 2 * kBrickX * static_cast<float>(column), y, z}, kBrick);
      if (!shifted) continue;
      Add(half_brick_shape, 1, {left + kBrickX / 2, y, z}, kBrick);
      Add(half_brick_shape, 1, {-left - kBrickX / 2, y, z}, kBrick);
    }
  }
};

Scene::Scene() : world_(std::make_unique<World>()) {
  world_->dynamics.setGravity({0, -9.81f, 0});
  world_->Add(world_->ground_shape, 0, {0, 0, 0}, kStone);
  world_->AddWall(14, 14, 0);
}

Scene::~Scene() = default;

void Scene::AddPyramid() {
  constexpr int kBase = 7;
  for (int level = 0; level < kBase; ++level) {
    const int side = kBase - level;
    const float start = -kCube * 1.02f * static_cast<float>(side - 1);
    for (int i = 0; i < side * side; ++i) {
      const float x = start + 2.04f * kCube * static_cast<float>(i % side);
      const float z = start + 2.04f * kCube * static_cast<float>(i / side);
      world_->Add(world_->cube_shape, 1, {x + 4.5f, kCube * static_cast<float>(2 * level + 1), z + 5.0f}, kStone);
    }
  }
}

void Scene::ThrowBall(uint64_t seed) {
  const float x = (Random01(seed * 3) - 0.5f) * 9;
  const float aim = (Random01(seed * 3 + 1) - 0.5f) * 4;
  btRigidBody& ball = world_->Add(world_->ball_shape, 30, {x, 2.2f, 13}, kIron);
  ball.setRestitution(0.4f);
  ball.setLinearVelocity({aim, 3.5f + 2 * Random01(seed * 3 + 2), -19});
}

void Scene::Step() {
  world_->dynamics.stepSimulation(kStepSeconds, 0);  // 0: exactly one step of this length
  bodies_.clear();
  for (size_t i = 0; i < world_->rigid.size(); ++i) {
    const btRigidBody& rigid = *world_->rigid[i];
    const btCollisionShape* shape = rigid.getCollisionShape();
    if (shape->getShapeType() == STATIC_PLANE_PROXYTYPE) continue;
    Body body;
    const btTransform& transform = rigid.getWorldTransform();
    body.center = FromBullet(transform.getOrigin());
    if (shape == &world_->ball_shape) {
      body.radius = kBall;
    } else {
      const btVector3 half = static_cast<const btBoxShape*>(shape)->getHalfExtentsWithMargin();
      for (int axis = 0; axis < 3; ++axis) {
        body.half_axes[axis] = FromBullet(transform.getBasis().getColumn(axis) * half[axis]);
      }
    }
    SetColour(body, rigid.getUserIndex(), i);
    bodies_.push_back(body);
  }
}

}  // namespace game
